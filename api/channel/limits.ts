/** Soft numbers of the channel; tests hand in shorter ones. */
export interface ChannelLimits {
  /** Connections of this process, whoever they are: they cost memory, and each a file of the process. */
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
  /** Size of a frame from a device: a login, or the acknowledgement of some hundred letters. */
  frameBytes: number;
  /** How often deadlines are looked at. */
  tickEveryMs: number;
  /** Frames of one device between two ticks; a device needs one every few seconds. */
  framesPerTick: number;
  /** Time from the connection to a login; not to our answer, for which a device may have to queue. */
  loginWithinMs: number;
  /** Further time for our answer: when all devices return at once, the last ones are answered after seconds. */
  seatWithinMs: number;
  /** Silence after which the device is pinged. Long, since a ping wakes a phone's radio. */
  pingAfterMs: number;
  /** Time for any sign of life after the ping. */
  pongWithinMs: number;
  /** Time for devices to move to another process when this one stops; afterwards they are closed. */
  moveWithinMs: number;
  /** Time for the close handshake; afterwards the socket is destroyed. */
  closeWithinMs: number;
  /** Above this much unsent output a device gets no further letters until it has read. */
  bufferedBytes: number;
  /** Frames unsent above which a device is not answered. */
  unsentAnswers: number;
  /** Time for a device to read something of what is unsent, whatever it says meanwhile. */
  readWithinMs: number;
  /** Letters on their way to one device; more only when some are acknowledged. */
  unackedLetters: number;
  /** Letters read for one device at a time; they travel in one frame. */
  pageLetters: number;
  /** A node says this often that it lives. */
  beatEveryMs: number;
  /** How often a node looks after devices that have letters they were not given. */
  lookAfterEveryMs: number;
  /** A node that was silent this long is dead. */
  deadAfterMs: number;
  /** Acknowledgements and departures are gathered this long and written together. */
  gatherMs: number;
  /** `updatedAt` of an installation is refreshed by a login at most this often. */
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
  seatWithinMs: 60_000,
  pingAfterMs: 200_000,
  pongWithinMs: 40_000,
  moveWithinMs: 2000,
  closeWithinMs: 2000,
  bufferedBytes: 64 * 1024,
  unsentAnswers: 64,
  readWithinMs: 60_000,
  unackedLetters: 256,
  pageLetters: 32,
  beatEveryMs: 10_000,
  lookAfterEveryMs: 30_000,
  deadAfterMs: 60_000,
  gatherMs: 20,
  touchEveryMs: 3_600_000,
};
