/** Path of the devices' WebSocket; the router endpoints return it (protocol/channel.md#router). */
export const channelPath = '/1.1/channel';

/**
 * Time that a device may cache the reply of a router endpoint (protocol/clients.md#app-router,
 * protocol/channel.md#router).
 */
export const routeTtlSeconds = 3600;
