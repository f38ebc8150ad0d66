module agent

go 1.19

require pawl v0.0.0

replace pawl => ../../../api/clients/go
