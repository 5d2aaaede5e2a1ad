/** Soft numbers of the channel; tests hand in shorter ones. */
export interface ChannelLimits {
  /** Connections of this process: each costs memory and a file descriptor. */
  connections: number;
  /**
   * Connections of one remote address (of IPv6: of one /64) to this process. Far above what one network has:
   * a carrier puts thousands of phones behind one address, and a proxy that is not counted in
   * `TRUSTED_PROXIES` puts all of them there.
   */
  connectionsPerAddress: number;
  /** Upgrades of one remote address in a minute: all of its devices may come back at once, and once more. */
  upgradesPerAddress: number;
  /**
   * Connections of one app to this process: the rest stays for other apps. Over all processes there is no
   * limit: a count that all share would be one row for which every login waits, and more processes are how
   * an app is given more room.
   */
  connectionsPerApp: number;
  /** Size of a frame from a device: a login, or the acknowledgement of some hundred messages. */
  frameBytes: number;
  /** Interval of the check of deadlines. */
  tickEveryMs: number;
  /** Frames of one device between two ticks; a device needs one every few seconds. */
  framesPerTick: number;
  /** Time from the connection to the login command. */
  loginWithinMs: number;
  /** Further time for our answer: when all devices return at once, the last logins wait for seconds. */
  sessionWithinMs: number;
  /** Silence after which the device is pinged. Long, since a ping wakes a phone's radio. */
  pingAfterMs: number;
  /** Time for any sign of life after the ping. */
  pongWithinMs: number;
  /** Time for devices to move to another process when this one stops; afterwards they are closed. */
  goAwayWithinMs: number;
  /** Time for the close handshake; afterwards the socket is destroyed. */
  closeWithinMs: number;
  /** Unsent output above which a device gets no further messages until it has read. */
  bufferedBytes: number;
  /** Unsent frames above which the server does not answer a device. */
  unsentFrames: number;
  /** Time for a device to read something of the unsent output, whatever it sends in that time. */
  readWithinMs: number;
  /** Messages sent to one device and not acknowledged; more follow when some are acknowledged. */
  unacknowledgedMessages: number;
  /** Messages read for one device at a time; they are sent in one frame. */
  pageMessages: number;
  /** Interval of the heartbeat of a node (api process). */
  heartbeatEveryMs: number;
  /** Interval at which a node checks for messages that its devices have not been sent. */
  sweepEveryMs: number;
  /** Time without a heartbeat after which a node counts as dead. */
  deadAfterMs: number;
  /** Time for which acknowledgements and disconnections are collected to be written together. */
  writeDelayMs: number;
  /** Shortest interval at which a login refreshes `updatedAt` of an installation. */
  touchEveryMs: number;
}

export const channelLimits: ChannelLimits = {
  connections: 50_000,
  connectionsPerAddress: 20_000,
  upgradesPerAddress: 40_000,
  connectionsPerApp: 40_000,
  frameBytes: 16 * 1024,
  tickEveryMs: 1000,
  framesPerTick: 200,
  loginWithinMs: 10_000,
  sessionWithinMs: 60_000,
  pingAfterMs: 200_000,
  pongWithinMs: 40_000,
  goAwayWithinMs: 2000,
  closeWithinMs: 2000,
  bufferedBytes: 64 * 1024,
  unsentFrames: 64,
  readWithinMs: 60_000,
  unacknowledgedMessages: 256,
  pageMessages: 32,
  heartbeatEveryMs: 10_000,
  sweepEveryMs: 30_000,
  deadAfterMs: 60_000,
  writeDelayMs: 20,
  touchEveryMs: 3_600_000,
};
