import { fileURLToPath } from 'node:url';
import { pythonPackages, versionIn } from '../../../ops/check/toolchains.ts';
import { testDrivenClient } from '../../support/clients/driven-client.ts';

const requirements = new URL('requirements.txt', import.meta.url);

/**
 * Tests the unmodified Python SDK from PyPI. `LC_API_SERVER` contains the URL of the service, as
 * its documentation says.
 */
testDrivenClient({
  name: 'Python (`leancloud`, PyPI)',
  version: versionIn(requirements, /^leancloud==(\S+)/m),
  programs: ['python3'],
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
    command: 'python3',
    args: ['-W', 'ignore', fileURLToPath(new URL('drive.py', import.meta.url))],
    env: { PYTHONPATH: await pythonPackages(requirements) },
  }),
});
