"""A party's models and its stored shares of them: built, stored, exported, promoted to serve."""
