import type { Example, ExampleCredential } from '../../api/openapi/operation.ts';
import type { Route } from '../../api/route.ts';

/** Headers by credential. Their values are variables that the pages explain. */
const headers: Readonly<Record<ExampleCredential, string[]>> = {
  appKey: ['X-LC-Id: $APP_ID', 'X-LC-Key: $APP_KEY'],
  masterKey: ['X-LC-Id: $APP_ID', 'X-LC-Key: $MASTER_KEY,master'],
  session: ['X-LC-Session: $SESSION'],
  adminToken: ['Authorization: Bearer $CARILLON_ADMIN_TOKEN'],
};

/** Longest JSON that is written in one line. */
const lineChars = 80;

/** Formats JSON in one line if it is short, else with line breaks. */
export function jsonText(value: unknown): string {
  const line = JSON.stringify(value);
  return line.length <= lineChars ? line : JSON.stringify(value, null, 2);
}

/** Quotes a text for a shell. */
const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** Renders the request of a recorded example as a command. */
export function curlCommand({ method, paths }: Pick<Route, 'method' | 'paths'>, example: Example) {
  const { path = {}, query = {}, credentials = [], body } = example;
  const [template = ''] = paths;
  const target = template.replaceAll(/:(\w+)/g, (_, name: string) =>
    name === 'appId' ? '$APP_ID' : encodeURIComponent(path[name] ?? ''),
  );
  const parameters = Object.entries(query).map(([name, value]) => `${name}=${value}`);
  const isRead = method === 'GET';
  const search = isRead || parameters.length === 0 ? '' : `?${parameters.join('&')}`;
  const hasOwnMethod = !isRead && (method !== 'POST' || body === undefined);
  const start = [
    'curl',
    ...(isRead && parameters.length > 0 ? ['-G'] : []),
    ...(hasOwnMethod ? ['-X', method] : []),
    `"$URL${target}${search}"`,
  ].join(' ');
  const lines = [
    start,
    ...credentials.map((one) => headers[one].map((text) => `-H "${text}"`).join(' ')),
    ...(isRead ? parameters.map((text) => `--data-urlencode ${quoted(text)}`) : []),
    ...(body === undefined
      ? []
      : ["-H 'Content-Type: application/json'", `-d ${quoted(jsonText(body))}`]),
  ];
  return lines.join(' \\\n  ');
}
