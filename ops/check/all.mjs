// Plain JavaScript, so that this message also appears on a Node version that cannot run TypeScript.
if (Number(process.versions.node.split('.')[0]) < 24) {
  console.error(
    `Node 24 is missing (this is ${process.version}): an optional package brings it for Linux, Windows and Intel Macs. ` +
      'Run `npm ci --include=optional`, or put a Node 24 first in PATH.',
  );
  console.log('0 passed, 1 failed');
  process.exitCode = 1;
} else {
  await import('./all.ts');
}
