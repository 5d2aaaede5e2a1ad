import { jsonProtocol } from './json.ts';
import { protobufProtocols } from './protobuf.ts';
import type { Protocol } from './protocol.ts';

const byName = new Map([jsonProtocol, ...protobufProtocols].map((protocol) => [protocol.name, protocol]));

/** Returns the first offered protocol that the server supports. The empty name stands for JSON. */
export function chooseProtocol(offered: Iterable<string>): Protocol | undefined {
  for (const name of offered) {
    const protocol = byName.get(name);
    if (protocol) return protocol;
  }
  return undefined;
}
