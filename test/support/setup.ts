import { loopbackNetworks } from '../../shared/config/private-hosts.ts';
import { setPrivateHosts } from '../../shared/http/outbound-addresses.ts';

// Tests of connectors open senders without a service process, which would read
// CARILLON_PRIVATE_HOSTS.
setPrivateHosts(loopbackNetworks);
