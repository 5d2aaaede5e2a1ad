import { readFileSync } from 'node:fs';
import ts from 'typescript';
import { channelLimits } from '../../api/channel/limits.ts';
import { protobufProtocols } from '../../api/channel/protocols/protobuf.ts';
import {
  type CloseReason,
  closeReasons,
  jsonProtocol,
} from '../../api/channel/protocols/protocol.ts';
import { channelPath, routeTtlSeconds } from '../../shared/domain/installations/installation.ts';
import { code, grouped, page, table } from './markdown.ts';

const intro = `Devices that no vendor serves keep a WebSocket to ${code(channelPath)}. They ask \`GET /v1/route?appId=…\` for the address; the reply is valid for
${grouped(routeTtlSeconds)} s. The sub-protocol of the WebSocket chooses the protocol; all of them carry the same.`;

const login = `A device sends \`login\` with \`appId\` and \`installationId\`, then gets \`data\` with \`ids\` and \`msg\` for its pushes, and sends \`ack\` with the \`ids\`
that it has shown or stored. A push that is not acknowledged is sent again at the next login, with the same id, until it expires. \`{}\` is a
heartbeat and is answered with \`{}\`. In JSON:`;

const example = `\`\`\`
device → {"cmd":"login","appId":"<app id>","installationId":"<installation id>"}
server → {"cmd":"data","ids":["123"],"msg":[{"alert":"Hello"}]}
device → {"cmd":"ack","ids":["123"]}
device → {}
server → {}
\`\`\``;

/** Renders the protocols, close codes and limits of the device channel. */
export function channelPage(): string {
  const protocols = [jsonProtocol, ...protobufProtocols].map(({ name }) => [
    name === '' ? 'none' : code(name),
    name === '' ? 'JSON, text frames' : formOf(name),
  ]);
  return page(
    'Device channel',
    intro,
    table(['sub-protocol', 'frames'], protocols),
    '## Login, messages, acknowledgements',
    login,
    example,
    '## Close codes',
    table(['code', 'reason', 'when'], closeRows()),
    '## Limits',
    'Limits of one api process.',
    table(['limit', 'value', 'meaning'], limitRows()),
  );
}

const formOf = (name: string): string =>
  name.includes('base64')
    ? 'Protocol Buffers in base64, text frames'
    : 'Protocol Buffers, binary frames';

const closeMeanings: Record<CloseReason, string> = {
  goingAway: 'the process stops: connect again',
  tooManyFrames: 'the device sent more frames than `framesPerTick`',
  tryAgainLater:
    'the database is away, the app has too many connections, or the login took too long here',
  appNotAvailable: 'no such app, or a service that is not offered',
  duplicatedLogin: 'the installation logged in on another connection',
  invalidLogin: 'malformed login, or a login of another device on the same connection',
  readTimeout: 'no answer to a ping, or the device does not read',
  loginTimeout: 'no login in time',
  unparseable: 'a frame that cannot be read',
};

const closeRows = (): string[][] =>
  Object.entries(closeMeanings).map(([name, meaning]) => {
    const known = Object.entries(closeReasons).find(([key]) => key === name)?.[1];
    return [String(known?.code), code(known?.reason ?? name), meaning];
  });

function limitRows(): string[][] {
  const meanings = memberComments(
    new URL('../../api/channel/limits.ts', import.meta.url),
    'ChannelLimits',
  );
  return Object.entries(channelLimits).map(([name, value]) => {
    const meaning = meanings.get(name);
    if (meaning === undefined) throw new Error(`ChannelLimits.${name} has no comment`);
    return [code(name), withUnit(name, value), meaning];
  });
}

/** Formats a number with the unit in which its name ends. */
function withUnit(name: string, value: number): string {
  if (name.endsWith('Ms'))
    return value % 1000 === 0 ? `${grouped(value / 1000)} s` : `${grouped(value)} ms`;
  return name.endsWith('Bytes') ? `${grouped(value)} bytes` : grouped(value);
}

/**
 * Returns the doc comments of an interface's members. The page uses them as descriptions of the
 * limits.
 */
function memberComments(file: URL, interfaceName: string): Map<string, string> {
  const source = ts.createSourceFile(
    file.pathname,
    readFileSync(file, 'utf8'),
    ts.ScriptTarget.Latest,
    true,
  );
  const declaration = source.statements
    .filter(ts.isInterfaceDeclaration)
    .find(({ name }) => name.text === interfaceName);
  const entries = (declaration?.members ?? []).map((member): [string, string] => {
    const comments = ts
      .getJSDocCommentsAndTags(member)
      .map(({ comment }) => ts.getTextOfJSDocComment(comment));
    return [member.name?.getText(source) ?? '', comments.join(' ')];
  });
  return new Map(entries);
}
