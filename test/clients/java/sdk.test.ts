import { fileURLToPath } from 'node:url';
import { mavenPackages, versionIn } from '../../../ops/check/toolchains.ts';
import { testDrivenClient } from '../../support/clients/driven-client.ts';

/**
 * Tests the unmodified Java SDK from Maven Central, in a separate process and working directory.
 */
testDrivenClient({
  name: 'Java (`cn.leancloud:storage-core`, Maven Central)',
  version: versionIn(
    new URL('pom.xml', import.meta.url),
    /storage-core<\/artifactId>\s*<version>([^<]+)/,
  ),
  programs: ['java', 'mvn'],
  topics: [
    ...[
      'sign-up',
      'login',
      'become',
      'codes by SMS',
      'mail',
      'third-party accounts',
      'roles',
      'queries',
    ],
    ...['captcha', 'installations', 'push', 'functions', 'errors'],
  ],
  prepare: async () => ({
    command: 'java',
    args: [
      ...['-cp', await mavenPackages(new URL('./', import.meta.url))],
      fileURLToPath(new URL('Drive.java', import.meta.url)),
    ],
  }),
});
