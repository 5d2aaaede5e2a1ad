import { Option } from 'commander';
import { z } from 'zod';
import { confirm } from '../../confirm.ts';
import { type Report, type Shell, table } from '../../report.ts';
import { chooseAppId, connect, part } from '../../service.ts';

interface AppOption {
  app?: string;
}

const app = ['--app <appId>', 'the application; not needed when there is only one'] as const;

/** Adds `carillon sms-template` and `carillon sms-signature`: texts of SMS messages and their approval. */
export function addSmsTextCommands(shell: Shell): void {
  const templates = addGroup(shell, 'sms-template', 'SMS templates');
  templates
    .command('put <name> <text>')
    .description('save a template; it waits for approval')
    .addOption(
      new Option('--type <type>', 'what it is for')
        .choices(['verification', 'notification'])
        .default('notification'),
    )
    .option(...app)
    .action(
      shell.act((name: string, text: string, { app: asked, type }: AppOption & { type: string }) =>
        change(asked, { method: 'PUT', path: pathOf('sms-template', name), body: { type, text } }),
      ),
    );
  addGroup(shell, 'sms-signature', 'SMS signatures')
    .command('put <name>')
    .description('save a signature; it waits for approval')
    .option(...app)
    .action(
      shell.act((name: string, { app: asked }: AppOption) =>
        change(asked, { method: 'PUT', path: pathOf('sms-signature', name), body: {} }),
      ),
    );
}

type Kind = 'sms-template' | 'sms-signature';

const pathOf = (kind: Kind, name?: string): string => `${kind}s${name === undefined ? '' : `/${part(name)}`}`;

/** Adds the commands that both kinds of text have. Returns the group. */
function addGroup({ program, act, isJson }: Shell, kind: Kind, title: string) {
  const group = program.command(kind).description(`${title} of an application`);
  group
    .command('list')
    .description(`list the ${title}`)
    .option(...app)
    .action(act(({ app: asked }: AppOption) => list(asked, kind)));
  group
    .command('show <name>')
    .description('show one')
    .option(...app)
    .action(
      act((name: string, { app: asked }: AppOption) =>
        change(asked, { method: 'GET', path: pathOf(kind, name) }),
      ),
    );
  group
    .command('approve <name>')
    .description('approve one: messages use it from now on')
    .option(...app)
    .action(
      act((name: string, { app: asked }: AppOption) =>
        change(asked, { method: 'POST', path: `${pathOf(kind, name)}/approve`, body: {} }),
      ),
    );
  group
    .command('delete <name>')
    .description('delete one')
    .option(...app)
    .option('--yes', 'do not ask')
    .action(
      act(async (name: string, { app: asked, yes }: AppOption & { yes?: boolean }) => {
        if (!yes && !isJson()) await confirm(`Delete ${name}?`);
        return change(asked, { method: 'DELETE', path: pathOf(kind, name) });
      }),
    );
  return group;
}

interface Call {
  method: string;
  /** Path after that of the app. */
  path: string;
  body?: object;
}

async function ofApp(asked: string | undefined, { method, path, body }: Call): Promise<unknown> {
  const service = await connect();
  return service.admin(method, `/apps/${part(await chooseAppId(service, asked))}/${path}`, body);
}

async function change(asked: string | undefined, call: Call): Promise<Report> {
  const document = await ofApp(asked, call);
  return { document, text: call.method === 'DELETE' ? 'It is deleted.' : JSON.stringify(document, null, 2) };
}

const texts = z.object({
  results: z.array(z.looseObject({ name: z.string(), status: z.string(), text: z.string().optional() })),
});

async function list(asked: string | undefined, kind: Kind): Promise<Report> {
  const document = await ofApp(asked, { method: 'GET', path: pathOf(kind) });
  const rows = texts.parse(document).results.map(({ name, status, text }) => [name, status, text ?? '']);
  return {
    document,
    text: rows.length > 0 ? table(['name', 'state', 'text'], rows) : 'Nothing was found.',
  };
}
