"""Tell a party's own operators how it is: metrics to scrape, and traces that cross parties."""
