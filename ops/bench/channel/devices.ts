import { z } from 'zod';
import type { Environment } from '../../../shared/config/config.ts';
import { QuestionProcess } from '../harness/question-process.ts';

const devicesSeen = z.object({
  /** Devices that are logged in. */
  connected: z.number(),
  /**
   * The following members count since the last `forget`: received messages (each once per device),
   * repeated messages, acknowledgements and lost connections.
   */
  received: z.number(),
  repeated: z.number(),
  acked: z.number(),
  lost: z.number(),
  /** Close codes of the last thousand lost connections. */
  closeCodes: z.array(z.number()),
  /**
   * Times of the first and the last message since the last `forget`, in milliseconds since 1970. 0
   * if there was no message.
   */
  firstMs: z.number(),
  lastMs: z.number(),
});
export type DevicesSeen = z.infer<typeof devicesSeen>;

const fleet = z.object({ apiUrl: z.string(), appId: z.string(), count: z.number() });
export type Fleet = z.infer<typeof fleet>;

/** Question to the process. The answer is `devicesSeen`. */
export const devicesOrder = z.union([
  z.object({ connect: fleet }),
  z.object({ forget: z.boolean() }),
]);

/** Process with the devices of a benchmark (devices-process.ts). */
export interface BenchDevices {
  readonly pid: number | undefined;
  /** Resolves when all devices are logged in. Devices reconnect by themselves. */
  connect(fleet: Fleet): Promise<DevicesSeen>;
  observe(): Promise<DevicesSeen>;
  /** Returns the counts and resets them. */
  forget(): Promise<DevicesSeen>;
  stop(): Promise<void>;
}

/** Starts the process of the devices. Connects no device yet. */
export async function startBenchDevices(
  env: Environment,
  log: (line: string) => void,
): Promise<BenchDevices> {
  const file = 'ops/bench/channel/devices-process.ts';
  const child = new QuestionProcess({ name: 'bench devices', file, env, log });
  const ask = (order: z.infer<typeof devicesOrder>) => child.ask(order, devicesSeen);
  await child.start();
  return {
    get pid() {
      return child.pid;
    },
    connect: (fleet) => ask({ connect: fleet }),
    observe: () => ask({ forget: false }),
    forget: () => ask({ forget: true }),
    stop: () => child.stop(),
  };
}

const maskBit = 0x80;
const finBit = 0x80;
const lengthMask = 0x7f;
const opcodeMask = 0x0f;
const twoByteLength = 126;
const eightByteLength = 127;

/**
 * Returns a frame of a client, masked with a random key (RFC 6455, section 5.3). `text` is ASCII of
 * up to 65,535 bytes.
 */
export function maskedFrame(opcode: number, text: string): Buffer {
  const isShort = text.length < twoByteLength;
  const start = isShort ? 6 : 8;
  const frame = Buffer.allocUnsafe(start + text.length);
  frame[0] = finBit | opcode;
  frame[1] = maskBit | (isShort ? text.length : twoByteLength);
  if (!isShort) frame.writeUInt16BE(text.length, 2);
  const key = (Math.random() * 2 ** 32) >>> 0;
  frame.writeUInt32BE(key, start - 4);
  const mask = [key >>> 24, (key >>> 16) & 0xff, (key >>> 8) & 0xff, key & 0xff] as const;
  for (let i = 0; i < text.length; i += 1)
    frame[start + i] = text.charCodeAt(i) ^ (mask[i & 3] ?? 0);
  return frame;
}

/**
 * Calls `onFrame` for each complete frame of a server from `start` on, with the opcode and the
 * range of the payload. Returns the offset of the first incomplete frame. Expects that the server
 * sends each message in one frame.
 */
export function readFrames(
  bytes: Buffer,
  start: number,
  onFrame: (opcode: number, from: number, to: number) => void,
): number {
  let at = start;
  while (bytes.length - at >= 2) {
    const first = bytes[at] ?? 0;
    const short = (bytes[at + 1] ?? 0) & lengthMask;
    const from = at + (short === twoByteLength ? 4 : short === eightByteLength ? 10 : 2);
    if (bytes.length < from) break;
    const length =
      short === twoByteLength
        ? bytes.readUInt16BE(at + 2)
        : short === eightByteLength
          ? Number(bytes.readBigUInt64BE(at + 2))
          : short;
    if (bytes.length < from + length) break;
    onFrame(first & opcodeMask, from, from + length);
    at = from + length;
  }
  return at;
}
