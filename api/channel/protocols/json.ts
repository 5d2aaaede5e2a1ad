import { z } from 'zod';
import type { DeviceMessage } from '../../../shared/db/tables/channel/inbox.ts';
import { isJsonObject, parseJson } from '../../../shared/domain/json.ts';
import { closeReasons } from '../close-reason.ts';
import { type ClientCommand, loginMembers, type Protocol, pushIdsOf } from './protocol.ts';

const ack = z.object({ ids: z.array(z.union([z.string(), z.number()])) });

function valueIn(data: Buffer): unknown {
  try {
    return parseJson(data.toString('utf8'));
  } catch {
    return undefined;
  }
}

function parseCommand(command: { [key: string]: unknown }): ClientCommand {
  switch (command.cmd) {
    case 'login': {
      const result = loginMembers.safeParse(command);
      return result.success ? { kind: 'login', ...result.data } : { kind: 'invalidLogin' };
    }
    case 'ack': {
      const result = ack.safeParse(command);
      return result.success ? { kind: 'ack', pushIds: pushIdsOf(result.data.ids) } : { kind: 'unparseable' };
    }
    default:
      return { kind: Object.keys(command).length === 0 ? 'heartbeat' : 'other' };
  }
}

const text = (data: string | Buffer) => ({ data, isBinary: false });
const heartbeat = text('{}');

/** The text of one letter goes to all its devices: it is built once. */
const singles = new WeakMap<DeviceMessage, Buffer>();

function dataFrame(letters: DeviceMessage[]): string {
  const ids = letters.map(({ pushId }) => `"${pushId}"`).join(',');
  return `{"cmd":"data","ids":[${ids}],"msg":[${letters.map(({ content }) => content).join(',')}]}`;
}

function singleFrame(letter: DeviceMessage): Buffer {
  const known = singles.get(letter);
  if (known) return known;
  const frame = Buffer.from(dataFrame([letter]));
  singles.set(letter, frame);
  return frame;
}

/** The JSON language (protocol/channel.md#json-form): text frames, no sub-protocol, `{}` answered with `{}`. */
export const jsonProtocol: Protocol = {
  name: '',
  parse(data, isBinary) {
    const value = isBinary ? undefined : valueIn(data);
    return isJsonObject(value) ? parseCommand(value) : { kind: 'unparseable' };
  },
  heartbeat: () => heartbeat,
  loggedIn: () => undefined,
  data: (letters) => {
    const [first, ...more] = letters;
    return text(first && more.length === 0 ? singleFrame(first) : dataFrame(letters));
  },
  rejection: () => undefined,
  goAway: () => undefined,
  closeNotice: (farewell) =>
    closeReasons[farewell].code < 4000
      ? undefined
      : text(JSON.stringify({ cmd: 'error', ...closeReasons[farewell] })),
};
