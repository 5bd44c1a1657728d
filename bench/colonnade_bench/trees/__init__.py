"""Boosted trees over split columns beside scikit-learn's and XGBoost's on pooled ones."""
