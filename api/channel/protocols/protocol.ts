import { z } from 'zod';
import type { DeviceMessage } from '../../../shared/db/tables/channel/inbox.ts';
import type { CloseReason } from '../close-reason.ts';

/** What a device says, whatever language it speaks. Serials are numbers by which it knows the answer again. */
export type ClientCommand =
  | { kind: 'login'; appId: string; installationId: string; serial?: number }
  /** A login whose members cannot be anybody's. */
  | { kind: 'invalidLogin' }
  | { kind: 'heartbeat'; serial?: number }
  | { kind: 'ack'; pushIds: number[] }
  | { kind: 'otherService'; request: OtherServiceRequest }
  /** Well formed, but nothing that concerns pushes. */
  | { kind: 'other' }
  | { kind: 'unparseable' };

/** A request to another service that shares the socket with pushes elsewhere, as instant messages. */
export interface OtherServiceRequest {
  service: number | undefined;
  peerId: string | undefined;
  serial: number | undefined;
}

/** Text or binary frame, as the WebSocket library takes it. */
export interface Frame {
  data: string | Buffer;
  isBinary: boolean;
}

/** A language on the wire: what devices say becomes `Incoming`, what we say becomes frames. Pure. */
export interface Protocol {
  /** WebSocket sub-protocol; empty for none. */
  name: string;
  parse(data: Buffer, isBinary: boolean): ClientCommand;
  /** Answer to a heartbeat; undefined where the WebSocket's own ping serves. */
  heartbeat(serial: number | undefined): Frame | undefined;
  /** Answer to a successful login, where the language has one. */
  loggedIn(serial: number | undefined): Frame | undefined;
  /** `isOffline`: they waited while the device was away. */
  data(data: DeviceMessage[], isOffline: boolean): Frame;
  /** Answer to a request that we do not serve; the connection stays. */
  rejection(request: OtherServiceRequest): Frame | undefined;
  /** Asks the device to connect anew through the router, where the language has a word for it. */
  goAway(): Frame | undefined;
  /** Said before the socket closes, where the language has a word for it. */
  closeNotice(closeNotice: CloseReason): Frame | undefined;
}

/** NUL and other control characters never reach SQL; lengths leave room beyond any real id. */
export const loginMembers = z.object({
  appId: z.string().regex(/^[\w-]{1,64}$/),
  installationId: z.string().regex(/^[^\p{Cc}\p{Cs}]{1,256}$/u),
});

/** Letter ids are the ids of pushes; anything else was never given out. */
export function pushIdsOf(ids: (string | number)[]): number[] {
  return ids
    .map(String)
    .filter((id) => /^\d{1,16}$/.test(id))
    .map(Number)
    .filter(Number.isSafeInteger);
}
