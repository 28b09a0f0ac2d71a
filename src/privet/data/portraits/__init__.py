"""The drawn people behind `portraits`: who they are, and how a picture of them is drawn."""
