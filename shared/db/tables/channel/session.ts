/**
 * Session of a connected device. Session ids of an installation grow with every login, at any process: of two
 * sessions the one with the lower id is closed.
 */
export interface DeviceSession {
  appId: string;
  installation: number;
  sessionId: number;
}

/** Session that was just opened. */
export interface NewDeviceSession extends DeviceSession {
  /** Highest position of a pending message of the device at the login; 0 without one. */
  newestPosition: number;
}

/** NOTIFY topic of takeovers, logins that end another session; the payload is a `DeviceSession` in JSON. */
export const sessionTopic = 'carillon_session';

/** Device, as its login command names it. */
export interface DeviceName {
  appId: string;
  installationId: string;
}

export interface SessionRequest {
  nodeId: string;
  now: Date;
  /** An installation's `updatedAt` is refreshed when it is older than this. */
  touchedBefore: Date;
}
