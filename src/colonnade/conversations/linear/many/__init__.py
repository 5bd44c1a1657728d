"""What three and more parties need for L-BFGS with dealers: columns in whole numbers, theta in two parts."""
