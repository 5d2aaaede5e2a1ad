import type { Letter } from '../../shared/db/tables/channel-letters.ts';
import type { Farewell } from './farewell.ts';

/** What a device says, whatever language it speaks. */
export type Incoming =
  | { kind: 'login'; appId: string; installationId: string }
  /** A login whose members cannot be anybody's. */
  | { kind: 'badLogin' }
  | { kind: 'heartbeat' }
  | { kind: 'ack'; pushIds: number[] }
  /** Well formed, but nothing that concerns pushes. */
  | { kind: 'other' }
  | { kind: 'unparseable' };

/** Text or binary frame, as the WebSocket library takes it. */
export interface Frame {
  data: string | Buffer;
  isBinary: boolean;
}

/** A language on the wire: what devices say becomes `Incoming`, what we say becomes frames. Pure. */
export interface Protocol {
  /** WebSocket sub-protocol; empty for none. */
  name: string;
  parse(data: Buffer, isBinary: boolean): Incoming;
  /** Answer to a heartbeat; undefined where the WebSocket's own ping serves. */
  heartbeat(): Frame | undefined;
  /** Answer to a successful login, where the language has one. */
  loggedIn(): Frame | undefined;
  letters(letters: Letter[]): Frame;
  /** Said before the socket closes, where the language has a word for it. */
  farewell(farewell: Farewell): Frame | undefined;
}
