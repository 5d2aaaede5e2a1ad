import { z } from 'zod';
import { displayName } from '../../../../shared/domain/labels.ts';
import { reasonIn } from '../../language.ts';
import { type Report, type Shell, table } from '../../report.ts';
import { connect, part } from '../../service.ts';

const breaker = z.looseObject({
  id: z.string(),
  connector: z.string(),
  appId: z.string(),
  profile: z.string(),
  state: z.string(),
  forced: z.string().nullable(),
  since: z.string(),
  lastFailure: z
    .looseObject({
      ...{ reason: z.string(), at: z.string() },
      meaning: z.looseObject({ code: z.string(), zh: z.string() }),
    })
    .nullish(),
});

const verbs = {
  open: 'send nothing to this gateway until the breaker is closed or released',
  close: 'send to this gateway regardless of its failures',
  release: 'let the health of the gateway decide again',
} as const;

/** Adds `carillon breakers …`: lists and forces circuit breakers of gateways. */
export function addBreakerCommands({ program, act }: Shell): void {
  const breakers = program
    .command('breakers')
    .description('circuit breakers of gateways; while one is open, nothing is sent')
    .action(act(list));
  for (const [verb, description] of Object.entries(verbs))
    breakers
      .command(`${verb} <id>`)
      .description(description)
      .action(act((id: string) => force(id, verb)));
}

async function list(): Promise<Report> {
  const reply = await (await connect()).admin('GET', '/breakers');
  const { results } = z.object({ results: z.array(breaker) }).parse(reply);
  const rows = results.map(rowOf);
  const text = rows.length > 0 ? table(headings, rows) : 'There is no breaker: no app has a profile.';
  return { document: reply, text };
}

async function force(id: string, verb: string): Promise<Report> {
  const reply = await (await connect()).admin('POST', `/breakers/${part(id)}/${verb}`);
  return { document: reply, text: table(headings, [rowOf(breaker.parse(reply))]) };
}

const headings = ['id', 'gateway', 'state', 'forced', 'since', 'last failure'];

const rowOf = ({ id, connector, state, forced, since, lastFailure }: z.infer<typeof breaker>) => [
  id,
  displayName(connector),
  state,
  forced ?? '-',
  since,
  lastFailure ? `${reasonIn(lastFailure.reason, lastFailure.meaning)} at ${lastFailure.at}` : '-',
];
