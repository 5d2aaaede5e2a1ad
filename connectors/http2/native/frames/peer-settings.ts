import { throwConnectionError } from './connection-error.ts';
import {
  defaultFrameBytes,
  defaultWindowBytes,
  errorCode,
  maxWindowBytes,
  readUint32,
  setting,
} from './wire-format.ts';

/** What the peer has told us of itself (RFC 9113 6.5.2). */
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
 * The settings after a SETTINGS frame; throws for values that may not be. Unknown ones are passed over. Every
 * size of the header table is told, in order: the smallest in between counts too (RFC 7541 4.2).
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
        // A server may say nothing but 0 (RFC 9113 6.5.2).
        if (value !== 0) throwConnectionError(errorCode.protocol, 'a server that wants to be pushed to');
        break;
      case setting.maxConcurrentStreams:
        settings.maxConcurrentStreams = value;
        break;
      case setting.initialWindowSize:
        if (value > maxWindowBytes)
          throwConnectionError(errorCode.flowControl, 'an initial window beyond 2^31-1');
        settings.initialWindowSize = value;
        break;
      case setting.maxFrameSize:
        if (value < defaultFrameBytes || value > 0xff_ffff)
          throwConnectionError(errorCode.protocol, 'a frame size that may not be');
        settings.maxFrameSize = value;
        break;
    }
  }
  return settings;
}
