/**
 * WebSocket close codes and reasons. Codes below 4000 are those of RFC 6455, the others those of the public service
 * (protocol/errors.md#channel-codes).
 */
export const closeReasons = {
  goingAway: { code: 1001, reason: 'GOING_AWAY' },
  tooManyFrames: { code: 1008, reason: 'TOO_MANY_FRAMES' },
  tryAgainLater: { code: 1013, reason: 'TRY_AGAIN_LATER' },
  appNotAvailable: { code: 4100, reason: 'APP_NOT_AVAILABLE' },
  duplicatedLogin: { code: 4101, reason: 'DUPLICATED_LOGIN' },
  invalidLogin: { code: 4103, reason: 'INVALID_LOGIN' },
  readTimeout: { code: 4107, reason: 'READ_TIMEOUT' },
  loginTimeout: { code: 4108, reason: 'LOGIN_TIMEOUT' },
  unparseable: { code: 4114, reason: 'UNPARSEABLE_RAW_MESSAGE' },
} as const;

export type CloseReason = keyof typeof closeReasons;

/** End of a connection. */
export interface CloseEvent {
  code: number;
  /** Failure of the network, or fault of the device. */
  error: Error | undefined;
}
