import type { DeviceMessage } from '../../../shared/db/tables/channel/inbox.ts';
import { closeReasons } from '../close-reason.ts';
import { type Command, commands, readCommand, writeCommand } from './protobuf-wire.ts';
import { type ClientCommand, type Frame, loginMembers, type Protocol, pushIdsOf } from './protocol.ts';

/** The service of pushes; the others (live queries, instant messages) are not ours. */
const pushService = 0;

/** Commands that ask something of a service that we do not have: whoever sent one waits for an answer. */
const foreignCommands: ReadonlySet<number | undefined> = new Set([
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

/** The public service's word for a service that is switched off for an app. */
const noSuchService = {
  code: closeReasons.appNotAvailable.code,
  reason: closeReasons.appNotAvailable.reason,
  detail: 'Only pushes are served here.',
};

function foreign({ service, peerId, serial }: Command): ClientCommand {
  return { kind: 'otherService', request: { service, peerId, serial } };
}

function incomingOf(command: Command): ClientCommand {
  const isForPushes = (command.service ?? pushService) === pushService;
  switch (command.cmd) {
    case commands.login: {
      if (!isForPushes) return foreign(command);
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
      return foreignCommands.has(command.cmd) ? foreign(command) : { kind: 'other' };
  }
}

/** How a language packs the bytes of a command into a frame. */
interface Packing {
  pack(command: Buffer): Frame;
  /** The bytes of a command; undefined when the frame is none of this language. */
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
    return incomingOf(readCommand(command));
  } catch {
    return { kind: 'unparseable' };
  }
}

/**
 * One protobuf language (protocol/channel.md#protobuf-form). `peerId` stays empty in whatever concerns pushes: clients find the
 * receiver by it, and only the one without a name gets pushes.
 */
function protobufProtocol(name: string, { pack, unpack }: Packing): Protocol {
  /** The frame of one letter goes to all its devices: it is built once. */
  const singles = new WeakMap<DeviceMessage, Frame>();
  const dataFrame = (letters: DeviceMessage[], isOffline: boolean) => {
    const ids = letters.map(({ pushId }) => String(pushId));
    const msg = letters.map(({ content }) => content);
    return pack(writeCommand({ cmd: 'data', data: { ids, msg, isOffline } }));
  };
  const singleFrame = (letter: DeviceMessage) => {
    const known = singles.get(letter);
    if (known) return known;
    const frame = dataFrame([letter], false);
    singles.set(letter, frame);
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
    data(letters, isOffline) {
      const [first, ...more] = letters;
      return first && more.length === 0 && !isOffline ? singleFrame(first) : dataFrame(letters, isOffline);
    },
    rejection: (request) => pack(writeCommand({ cmd: 'error', ...request, error: noSuchService })),
    goAway: () => goAway,
    closeNotice: (farewell) =>
      closeReasons[farewell].code < 4000
        ? undefined
        : pack(writeCommand({ cmd: 'error', error: closeReasons[farewell] })),
  };
}

/** The languages of Android and realtime clients; the older name says the same in pushes. */
export const protobufProtocols: readonly Protocol[] = [
  protobufProtocol('lc.protobuf2.3', binary),
  protobufProtocol('lc.protobuf2.1', binary),
  protobufProtocol('lc.proto2base64.3', base64),
];
