import { text } from 'node:stream/consumers';
import { createConfig, lintFromString } from '@redocly/openapi-core';

// Reads an OpenAPI document on standard input and prints the violations of the recommended rules as
// JSON. It is a separate process, because the linter takes 100 MB, which a test worker would keep.
const config = await createConfig({ extends: ['recommended'] });
const source = await text(process.stdin);
const problems = await lintFromString({ source, absoluteRef: 'openapi.json', config });
const lines = problems.map(
  ({ ruleId, message, location }) => `${ruleId} at ${location[0]?.pointer}: ${message}`,
);
process.stdout.write(JSON.stringify(lines));
