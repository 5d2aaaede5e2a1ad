import { Protocals, type Realtime } from 'leancloud-realtime';

/** Members of the library that its types do not declare. */
interface Command {
  cmd: number;
  dataMessage?: { ids: string[]; msg: { data: string }[]; offline: boolean | null };
}

interface Connection {
  on(event: string, listener: (command: Command) => void): void;
  send(command: object, isAnswered?: boolean): Promise<Command>;
  ping(): Promise<Command | undefined>;
}

declare module 'leancloud-realtime' {
  interface Realtime {
    _open(): Promise<Connection>;
    _close(): void;
  }
  const Protocals: {
    GenericCommand: new (members: object) => object;
    AckCommand: new (members: object) => object;
    CommandType: { login: number; loggedin: number; ack: number; data: number; echo: number };
  };
}

const { AckCommand, GenericCommand } = Protocals;
export const { CommandType } = Protocals;

/** Message as a device received it. */
interface ReceivedMessage {
  id: string;
  content: unknown;
  isOffline: boolean;
}

/**
 * Push device over a connection of the realtime library. It acknowledges messages and logs in on
 * request.
 */
export async function openDevice(
  realtime: Realtime,
  { appId, installationId }: { appId: string; installationId: string },
) {
  const connection = await realtime._open();
  const messages: ReceivedMessage[] = [];
  const command = (cmd: number, members: object = {}) =>
    new GenericCommand({ cmd, appId, installationId, ...members });
  connection.on('message', ({ cmd, dataMessage }) => {
    if (cmd !== CommandType.data || !dataMessage) return;
    const { ids, msg, offline } = dataMessage;
    for (const [i, id] of ids.entries())
      messages.push({ id, content: JSON.parse(msg[i]?.data ?? ''), isOffline: offline === true });
    void connection.send(command(CommandType.ack, { ackMessage: new AckCommand({ ids }) }), false);
  });
  const login = () => connection.send(command(CommandType.login, { service: 0 }));
  return { connection, messages, login };
}
