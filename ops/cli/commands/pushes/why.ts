import { z } from 'zod';
import { language } from '../../language.ts';
import type { Report, Shell } from '../../report.ts';
import { chooseAppId, connect, devicePart, part } from '../../service.ts';

const whyReply = z.looseObject({
  sentence: z.string(),
  texts: z.array(z.looseObject({ zh: z.string() })),
});

/** Adds `carillon why`: the outcome of a push for one device. */
export function addWhyCommand({ program, act }: Shell): void {
  program
    .command('why')
    .description('why a device did, or did not, get a push')
    .argument('<objectId>', 'the push')
    .argument('<installation>', "the device: its installation's objectId, installationId or device token")
    .option('--app <appId>', 'the application; not needed when there is only one')
    .action(act(explain));
}

async function explain(objectId: string, installation: string, options: { app?: string }): Promise<Report> {
  const service = await connect();
  const appId = await chooseAppId(service, options.app);
  const device = await devicePart(service, appId, installation);
  const reply = await service.admin(
    'GET',
    `/apps/${part(appId)}/notifications/${part(objectId)}/devices/${device}`,
  );
  const { sentence, texts } = whyReply.parse(reply);
  return { document: reply, text: language() === 'en' ? sentence : texts.map(({ zh }) => zh).join('') };
}
