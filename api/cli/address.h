/* address.h - whether one could listen at an address. */
#ifndef PAWL_CLI_ADDRESS_H
#define PAWL_CLI_ADDRESS_H

/* CLI_GO_ON, or CLI_CONFIG with a sentence that names the flag. The services share their ports
 * (SO_REUSEPORT), so that two of them on one port do not notice each other: hence the look beforehand. */
int address_check(const char *address, const char *flag);

#endif
