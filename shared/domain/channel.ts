/** Where devices open their WebSocket; the router endpoints hand it out (protocol/channel.md#router). */
export const channelPath = '/1.1/channel';

/** How long a device may remember the answer of a router endpoint (protocol/clients.md#app-router, protocol/channel.md#router). */
export const routeTtlSeconds = 3600;
