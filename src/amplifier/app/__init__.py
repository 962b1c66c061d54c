"""The application: policy that turns what a person wrote and installed into sessions of the kernel."""
