import { type CredentialGuide, commonMembers } from '../../connectors/contract/guide.ts';
import { guideOf } from '../../connectors/guides.ts';
import { credentialsOf } from '../../connectors/registry.ts';
import { brandOf, type ConnectorId, profileConnectorIds } from '../../shared/domain/labels.ts';
import { code, fenced, page, table } from './markdown.ts';
import { type JsonSchema, type Member, membersOf, shapeOf } from './schema.ts';

const intro = `A push profile holds the credentials of one gateway: \`npx carillon profile put <appId> <connector> <file>\`, or
\`PUT /console/api/apps/:appId/profiles/:connector/:name\`. The profile \`_default\` serves devices that name none. Credentials are stored
encrypted and never shown again. \`npx carillon profile help <connector>\` says the same as this page. The device channel takes none.`;

/** Renders the credentials that a profile of each connector needs. */
export function credentialsPage(): string {
  const sections = profileConnectorIds.flatMap(sectionOf);
  return page('Credentials of a push profile', intro, ...sections);
}

function sectionOf(id: ConnectorId): string[] {
  const [guide, schema] = [guideOf(id), credentialsOf(id)];
  if (!guide || !schema) return [];
  const { oneOf, anyOf, ...single } = shapeOf(schema);
  const variants = oneOf ?? anyOf ?? [single];
  return [
    `## ${brandOf(id)}: ${code(id)}`,
    guide.source,
    ...variants.flatMap((variant) => [
      ...(variants.length > 1 ? [`### ${titleOf(variant)}`] : []),
      membersTable(variant, guide),
    ]),
    'Example:',
    fenced('json', JSON.stringify(guide.example, null, 2)),
    ...(guide.files.length > 0
      ? ['Files that `carillon profile put` takes as the vendor hands them out:', list(guide.files)]
      : []),
  ];
}

/** Names a variant by its fixed `auth` member: `auth: "token"`. */
const titleOf = ({ properties = {} }: JsonSchema): string =>
  Object.entries(properties)
    .filter(([name, { const: fixed }]) => fixed !== undefined && name === 'auth')
    .map(([name, { const: fixed }]) => code(`${name}: ${JSON.stringify(fixed)}`))
    .join(', ');

function membersTable(schema: JsonSchema, guide: CredentialGuide): string {
  const rows = membersOf(schema).map((member) => [
    code(member.name),
    member.type,
    member.isRequired ? 'yes' : 'no',
    meaningOf(member, guide),
  ]);
  return table(['member', 'type', 'required', 'meaning'], rows);
}

function meaningOf({ name }: Member, { members }: CredentialGuide): string {
  const known: Readonly<Record<string, string>> = { ...commonMembers, ...members };
  const meaning = known[name];
  if (meaning === undefined) throw new Error(`The guide of a connector has no line for ${name}`);
  return meaning;
}

const list = (lines: readonly string[]): string => lines.map((line) => `- ${line}`).join('\n');
