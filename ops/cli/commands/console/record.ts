import { z } from 'zod';
import { displayName } from '../../../../shared/domain/labels.ts';
import { wholeNumber } from '../../input.ts';
import { type Report, type Shell, table } from '../../report.ts';
import { chooseAppId, connect, part } from '../../service.ts';

interface RecordOptions {
  app?: string;
  progress?: boolean;
  timeline?: string;
}

/** Adds `carillon record`: a push with its checked request, its progress, or its course. */
export function addRecordCommand({ program, act }: Shell): void {
  program
    .command('record <objectId>')
    .description('show a push with its request, or how far it is')
    .option('--app <appId>', 'the application; not needed when there is only one')
    .option('--progress', 'outcomes, rate and seconds left')
    .option('--timeline <seconds>', 'recipients by connector in steps of so many seconds')
    .action(act(show));
}

const steps = z.array(z.number());
const timeline = z.looseObject({
  from: z.string(),
  stepMs: z.number(),
  connectors: z.record(z.string(), z.object({ sent: steps, other: steps })),
});

async function show(
  objectId: string,
  { app: asked, progress, timeline: step }: RecordOptions,
): Promise<Report> {
  const service = await connect();
  const appId = part(await chooseAppId(service, asked));
  const path = `/apps/${appId}/notifications/${part(objectId)}`;
  if (step !== undefined) {
    const reply = await service.admin('GET', `${path}/timeline?step=${wholeNumber('--timeline', step, 1)}`);
    return describeTimeline(timeline.parse(reply));
  }
  const document = await service.admin('GET', progress ? `${path}/progress` : path);
  return { document, text: JSON.stringify(document, null, 2) };
}

function describeTimeline(course: z.infer<typeof timeline>): Report {
  const rows = Object.entries(course.connectors).flatMap(([connector, { sent, other }]) =>
    sent.map((count, at) => [
      `+${(at * course.stepMs) / 1000} s`,
      displayName(connector),
      count,
      other[at] ?? 0,
    ]),
  );
  const shown = table(['after', 'connector', 'handed over', 'other outcomes'], rows);
  return { document: course, text: `From ${course.from}\n\n${shown}` };
}
