import { fileURLToPath } from 'node:url';
import { mavenPackages, versionIn } from '../../../ops/check/toolchains.ts';
import { testDrivenClient } from '../../support/clients/driven-client.ts';

/**
 * Tests the unmodified push receiver of the Java SDK from Maven Central. It calls the router, opens
 * the socket with `lc.protobuf2`, logs in and acknowledges (docs/reference/protocol/channel.md).
 */
testDrivenClient({
  name: 'Java push receiver (`cn.leancloud:realtime-core`, Maven Central)',
  version: versionIn(
    new URL('pom.xml', import.meta.url),
    /realtime-core<\/artifactId>\s*<version>([^<]+)/,
  ),
  programs: ['java', 'mvn'],
  topics: [
    'installations',
    'route and login on the device channel',
    'pushes over the device channel',
  ],
  prepare: async () => ({
    command: 'java',
    args: [
      ...['-cp', await mavenPackages(new URL('./', import.meta.url))],
      fileURLToPath(new URL('Receive.java', import.meta.url)),
    ],
  }),
});
