/**
 * Returns whether the console contains a file, by its path below `docs`. The console contains the
 * guides, without the reference and the pages for contributors. A module of its own, because an
 * installed package contains `build.ts` and not the parser of `guides.ts`.
 */
export const isGuideFile = (file: string): boolean =>
  /^(?:zh\/)?(?:(?:clients|credentials|operate)\/)?[\w-]+\.md$/.test(file);
