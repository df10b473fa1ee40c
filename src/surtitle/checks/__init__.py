"""What `surtitle doctor` looks at, one module for each subject."""
