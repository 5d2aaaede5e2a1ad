/** Where devices open their WebSocket; the router endpoints hand it out (compat.md 6.1). */
export const channelPath = '/1.1/channel';

/** How long a device may remember the answer of a router endpoint (compat.md 2.4, 6.2). */
export const routeTtlSeconds = 3600;
