import {
  defaultFrameBytes,
  defaultWindowBytes,
  errorCode,
  maxWindowBytes,
  readUint32,
  setting,
  throwConnectionError,
} from './wire-format.ts';

/** Settings of the peer (RFC 9113 6.5.2). */
export interface PeerSettings {
  maxConcurrentStreams: number | null;
  initialWindowSize: number;
  maxFrameSize: number;
}

export const initialSettings: PeerSettings = {
  maxConcurrentStreams: null,
  initialWindowSize: defaultWindowBytes,
  maxFrameSize: defaultFrameBytes,
};

/**
 * Applies a SETTINGS frame and returns the new settings. Ignores unknown settings. Throws if a
 * value is invalid. Passes each size of the header table to `onTableSize` in order, because the
 * smallest size counts too (RFC 7541 4.2).
 */
export function applySettings(
  known: PeerSettings,
  payload: Buffer,
  onTableSize: (bytes: number) => void,
): PeerSettings {
  const settings = { ...known };
  for (let at = 0; at < payload.length; at += 6) {
    const value = readUint32(payload, at + 2);
    switch (payload.readUInt16BE(at)) {
      case setting.headerTableSize:
        onTableSize(value);
        break;
      case setting.enablePush:
        // A server may only send 0 (RFC 9113 6.5.2).
        if (value !== 0) throwConnectionError(errorCode.protocol, 'ENABLE_PUSH of a server');
        break;
      case setting.maxConcurrentStreams:
        settings.maxConcurrentStreams = value;
        break;
      case setting.initialWindowSize:
        if (value > maxWindowBytes)
          throwConnectionError(errorCode.flowControl, 'an initial window above 2^31-1');
        settings.initialWindowSize = value;
        break;
      case setting.maxFrameSize:
        if (value < defaultFrameBytes || value > 0xff_ffff)
          throwConnectionError(errorCode.protocol, 'an invalid frame size');
        settings.maxFrameSize = value;
        break;
    }
  }
  return settings;
}
