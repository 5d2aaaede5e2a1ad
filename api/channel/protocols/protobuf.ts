import type { DeviceMessage } from '../../../shared/db/tables/channel/inbox.ts';
import { closeReasons } from '../close-reason.ts';
import { type Command, commands, readCommand, writeCommand } from './protobuf-wire.ts';
import { type ClientCommand, type Frame, loginMembers, type Protocol, pushIdsOf } from './protocol.ts';

/** Service number of pushes; the others are live queries and instant messages. */
const pushService = 0;

/** Commands of services that this server does not have; their senders wait for a reply. */
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

/** Error of the public service for a service that is disabled for an app. */
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
  /** Returns the bytes of a command; undefined for a frame of another encoding. */
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
 * Builds a protobuf protocol (protocol/channel.md#protobuf-form). Commands about pushes carry no `peerId`: clients choose
 * the receiver by it, and pushes go to the one without a name.
 */
function protobufProtocol(name: string, { pack, unpack }: Packing): Protocol {
  /** Frames by messages: those that go to many devices are one object, and their frame is built once. */
  const frames = new WeakMap<readonly DeviceMessage[], Frame>();
  const dataFrame = (messages: readonly DeviceMessage[], isOffline: boolean) => {
    const ids = messages.map(({ pushId }) => String(pushId));
    const msg = messages.map(({ content }) => content);
    return pack(writeCommand({ cmd: 'data', data: { ids, msg, isOffline } }));
  };
  const onlineFrame = (messages: readonly DeviceMessage[]) => {
    const known = frames.get(messages);
    if (known) return known;
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
        writeCommand({ cmd: 'loggedin', serial, service: pushService, loggedin: { pushDisabled: false } }),
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

/** Protocols of Android and realtime clients; for pushes both protobuf versions are the same. */
export const protobufProtocols: readonly Protocol[] = [
  protobufProtocol('lc.protobuf2.3', binary),
  protobufProtocol('lc.protobuf2.1', binary),
  protobufProtocol('lc.proto2base64.3', base64),
];
