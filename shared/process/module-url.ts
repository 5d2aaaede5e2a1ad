/**
 * Resolves a module that is started by its file name: a worker thread, a child process, a lazy
 * import. `path` is relative to `base` and ends in `.ts`. In the compiled package, where `base`
 * ends in `.js`, the result is the compiled form of the module: Node strips no types from files
 * below `node_modules`.
 */
export function moduleUrl(path: string, base: string): URL {
  return new URL(base.endsWith('.ts') ? path : path.replace(/\.ts$/, '.js'), base);
}
