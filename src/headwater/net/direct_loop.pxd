from headwater.net.endpoint cimport Endpoint
