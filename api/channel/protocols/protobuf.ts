import { Reader, Writer } from 'protobufjs/minimal.js';
import type { DeviceMessage } from '../../../shared/db/tables/channel-messages.ts';
import {
  type ClientCommand,
  closeReasons,
  type Frame,
  loginMembers,
  type Protocol,
  pushIdsOf,
} from './protocol.ts';

/**
 * Commands of the schema `push_server.messages2` (proto2, protocol/channel.md#protobuf-form). This
 * file reads and writes only the fields that pushes need, and ignores other fields. It uses the
 * reader and writer of protobufjs without its reflection, which compiles code at run time.
 */
export const commands = {
  session: 0,
  conv: 1,
  direct: 2,
  ack: 3,
  rcp: 4,
  unread: 5,
  logs: 6,
  error: 7,
  login: 8,
  data: 9,
  room: 10,
  read: 11,
  presence: 12,
  report: 13,
  echo: 14,
  loggedin: 15,
  logout: 16,
  loggedout: 17,
  patch: 18,
  pubsub: 19,
  blacklist: 20,
  goaway: 21,
} as const;

/** Returns the tag of a field: its number and wire type (varint, or length-delimited bytes). */
const number = (field: number) => field << 3;
const bytes = (field: number) => (field << 3) | 2;

const generic = {
  cmd: number(1),
  appId: bytes(3),
  peerId: bytes(4),
  serial: number(5),
  installationId: bytes(6),
  service: number(8),
  dataMessage: bytes(101),
  errorMessage: bytes(103),
  ackMessage: bytes(105),
  loggedinMessage: bytes(117),
};
const data = { ids: bytes(1), msg: bytes(2), offline: number(3) };
const jsonObject = { data: bytes(1) };
const error = { code: number(1), reason: bytes(2), detail: bytes(4) };
const ack = { ids: bytes(10) };
const loggedin = { pushDisabled: number(1) };

/** Command that a device sent. Absent members are undefined. */
export interface Command {
  cmd?: number;
  appId?: string;
  peerId?: string;
  serial?: number;
  installationId?: string;
  service?: number;
  ackIds: string[];
}

/** Reads the field of `tag` into `command`. Returns false if the field is unknown. */
type ReadField = (command: Command, tag: number, reader: Reader) => boolean;

function readFields(command: Command, buffer: Uint8Array, readField: ReadField): Command {
  const reader = Reader.create(buffer);
  while (reader.pos < reader.len) {
    const tag = reader.tag();
    if (!readField(command, tag, reader)) reader.skipType(tag & 7, 0, tag >>> 3);
  }
  return command;
}

const readAck: ReadField = (command, tag, reader) => {
  if (tag !== ack.ids) return false;
  command.ackIds.push(reader.string());
  return true;
};

const readGeneric: ReadField = (command, tag, reader) => {
  switch (tag) {
    case generic.cmd:
      command.cmd = reader.int32();
      return true;
    case generic.appId:
      command.appId = reader.string();
      return true;
    case generic.peerId:
      command.peerId = reader.string();
      return true;
    case generic.serial:
      command.serial = reader.int32();
      return true;
    case generic.installationId:
      command.installationId = reader.string();
      return true;
    case generic.service:
      command.service = reader.int32();
      return true;
    case generic.ackMessage:
      readFields(command, reader.bytes(), readAck);
      return true;
    default:
      return false;
  }
};

/** Reads one `GenericCommand`. Throws if the bytes are invalid. */
export function readCommand(buffer: Uint8Array): Command {
  return readFields({ ackIds: [] }, buffer, readGeneric);
}

/** Command to a device. Undefined members are omitted. */
export interface ServerCommand {
  cmd: keyof typeof commands;
  peerId?: string | undefined;
  serial?: number | undefined;
  service?: number | undefined;
  /** `msg` contains one JSON text for each id. */
  data?: { ids: string[]; msg: string[]; isOffline: boolean };
  error?: { code: number; reason: string; detail?: string };
  loggedin?: { pushDisabled: boolean };
}

function writeData(
  writer: Writer,
  { ids, msg, isOffline }: NonNullable<ServerCommand['data']>,
): void {
  for (const id of ids) writer.uint32(data.ids).string(id);
  for (const json of msg)
    writer.uint32(data.msg).fork().uint32(jsonObject.data).string(json).ldelim();
  if (isOffline) writer.uint32(data.offline).bool(true);
}

function writeError(
  writer: Writer,
  { code, reason, detail }: NonNullable<ServerCommand['error']>,
): void {
  writer.uint32(error.code).int32(code).uint32(error.reason).string(reason);
  if (detail !== undefined) writer.uint32(error.detail).string(detail);
}

/** Writes one `GenericCommand` with its fields in ascending order. */
export function writeCommand(command: ServerCommand): Buffer {
  const writer = Writer.create().uint32(generic.cmd).int32(commands[command.cmd]);
  if (command.peerId !== undefined) writer.uint32(generic.peerId).string(command.peerId);
  if (command.serial !== undefined) writer.uint32(generic.serial).int32(command.serial);
  if (command.service !== undefined) writer.uint32(generic.service).int32(command.service);
  if (command.data) {
    writer.uint32(generic.dataMessage).fork();
    writeData(writer, command.data);
    writer.ldelim();
  }
  if (command.error) {
    writer.uint32(generic.errorMessage).fork();
    writeError(writer, command.error);
    writer.ldelim();
  }
  if (command.loggedin)
    writer
      .uint32(generic.loggedinMessage)
      .fork()
      .uint32(loggedin.pushDisabled)
      .bool(command.loggedin.pushDisabled)
      .ldelim();
  const written = writer.finish();
  return Buffer.from(written.buffer, written.byteOffset, written.byteLength);
}

/** Service number of pushes. Other numbers mean live queries and instant messages. */
const pushService = 0;

/** Commands of services that this server does not have. Their senders wait for a reply. */
const otherServiceCommands: ReadonlySet<number | undefined> = new Set([
  commands.session,
  commands.conv,
  commands.direct,
  commands.logs,
  commands.room,
  commands.read,
  commands.presence,
  commands.report,
  commands.logout,
  commands.patch,
  commands.pubsub,
  commands.blacklist,
]);

/** Error with which LeanCloud refuses a service that is disabled for an app. */
const noSuchService = {
  code: closeReasons.appNotAvailable.code,
  reason: closeReasons.appNotAvailable.reason,
  detail: 'Only pushes are served here.',
};

function otherService({ service, peerId, serial }: Command): ClientCommand {
  return { kind: 'otherService', request: { service, peerId, serial } };
}

function toClientCommand(command: Command): ClientCommand {
  const isForPushes = (command.service ?? pushService) === pushService;
  switch (command.cmd) {
    case commands.login: {
      if (!isForPushes) return otherService(command);
      const result = loginMembers.safeParse(command);
      return result.success
        ? { kind: 'login', ...result.data, serial: command.serial }
        : { kind: 'invalidLogin' };
    }
    case commands.ack:
      return isForPushes ? { kind: 'ack', pushIds: pushIdsOf(command.ackIds) } : { kind: 'other' };
    case commands.echo:
      return { kind: 'heartbeat', serial: command.serial };
    default:
      return otherServiceCommands.has(command.cmd) ? otherService(command) : { kind: 'other' };
  }
}

/** Encoding of a command's bytes in a frame. */
interface Packing {
  pack(command: Buffer): Frame;
  /** Returns the bytes of a command. Returns undefined if the frame has another encoding. */
  unpack(data: Buffer, isBinary: boolean): Buffer | undefined;
}

const binary: Packing = {
  pack: (command) => ({ data: command, isBinary: true }),
  unpack: (data, isBinary) => (isBinary ? data : undefined),
};

const base64Text = /^[A-Za-z0-9+/]*={0,2}$/;

const base64: Packing = {
  pack: (command) => ({ data: command.toString('base64'), isBinary: false }),
  unpack(data, isBinary) {
    const text = isBinary ? '=' : data.toString('latin1');
    return base64Text.test(text) && text.length % 4 === 0 ? Buffer.from(text, 'base64') : undefined;
  },
};

function parse(command: Buffer): ClientCommand {
  try {
    return toClientCommand(readCommand(command));
  } catch {
    return { kind: 'unparseable' };
  }
}

/**
 * Builds a protobuf protocol (protocol/channel.md#protobuf-form). Commands about pushes have no
 * `peerId`: clients use it to choose the receiver, and pushes go to the receiver without a name.
 */
function protobufProtocol(name: string, { pack, unpack }: Packing): Protocol {
  /**
   * Frames by messages. Messages that go to many devices are one object, so their frame is built
   * once.
   */
  const frames = new WeakMap<readonly DeviceMessage[], Frame>();
  const dataFrame = (messages: readonly DeviceMessage[], isOffline: boolean) => {
    const ids = messages.map(({ pushId }) => String(pushId));
    const msg = messages.map(({ content }) => content);
    return pack(writeCommand({ cmd: 'data', data: { ids, msg, isOffline } }));
  };
  const onlineFrame = (messages: readonly DeviceMessage[]) => {
    const cached = frames.get(messages);
    if (cached) return cached;
    const frame = dataFrame(messages, false);
    frames.set(messages, frame);
    return frame;
  };
  const goAway = pack(writeCommand({ cmd: 'goaway' }));
  return {
    name,
    parse(data, isBinary) {
      const command = unpack(data, isBinary);
      return command ? parse(command) : { kind: 'unparseable' };
    },
    heartbeat: (serial) => pack(writeCommand({ cmd: 'echo', serial })),
    loggedIn: (serial) =>
      pack(
        writeCommand({
          cmd: 'loggedin',
          serial,
          service: pushService,
          loggedin: { pushDisabled: false },
        }),
      ),
    data: (messages, isOffline) => (isOffline ? dataFrame(messages, true) : onlineFrame(messages)),
    rejection: (request) => pack(writeCommand({ cmd: 'error', ...request, error: noSuchService })),
    goAway: () => goAway,
    closeNotice: (reason) =>
      closeReasons[reason].code < 4000
        ? undefined
        : pack(writeCommand({ cmd: 'error', error: closeReasons[reason] })),
  };
}

/** Protocols of Android and realtime clients. For pushes, both protobuf versions are equal. */
export const protobufProtocols: readonly Protocol[] = [
  protobufProtocol('lc.protobuf2.3', binary),
  protobufProtocol('lc.protobuf2.1', binary),
  protobufProtocol('lc.proto2base64.3', base64),
];
