/** Group of calls in the reference, and a tag of the document. */
export interface Area {
  title: string;
  /** Page of docs/reference/protocol with the rules of these calls. */
  rules: string;
  /** Tells whether a path belongs to the area; the first area that returns true has it. */
  has(path: string): boolean;
}

const under =
  (...prefixes: string[]) =>
  (path: string) =>
    prefixes.some((prefix) => path.startsWith(prefix));

export const areas: readonly Area[] = [
  { title: 'Admin API', rules: 'admin-api', has: under('/console/api/') },
  { title: 'Pushes', rules: 'push', has: under('/1.1/push', '/1.1/notifications', '/1.1/scheduledPush') },
  { title: 'Installations', rules: 'installations', has: under('/1.1/installations') },
  { title: 'Users and sessions', rules: 'users', has: under('/1.1/users', '/1.1/login') },
  { title: 'Roles', rules: 'roles', has: under('/1.1/roles') },
  {
    title: 'Codes, phones and mail',
    rules: 'codes',
    has: (path) => /sms|phone|mail|password|captcha/i.test(path),
  },
  { title: 'Cloud functions', rules: 'functions', has: under('/1.1/functions', '/1.1/call') },
  { title: 'Queries, batches and others', rules: 'queries', has: under('/1.1/') },
  { title: 'Routers, receipts and health', rules: 'channel', has: () => true },
];

/** Returns the area of a route by its first path. */
export function areaOf({ paths }: { paths: readonly string[] }): Area {
  const [path = ''] = paths;
  const area = areas.find(({ has }) => has(path));
  if (!area) throw new Error(`no area has ${path}`);
  return area;
}
