/** Commands that change a queue and look at it before: with --host, the daemon alone looks. */
import { maskControls, plural } from '../../presentation/text.ts'
import { ApiClient } from '../queue-client/api-client.ts'
import { CommandError, EX } from '../shell/exit.ts'
import type { RemoteCall } from './remote-reads.ts'

async function suspend({ shell, api, words: [asked = ''], options }: RemoteCall): Promise<void> {
  const duration = typeof options['for'] === 'number' ? options['for'] : null
  if (duration !== null && duration <= 0) throw new CommandError(EX.usage, '--for must be longer than 0')
  if (asked.includes('*')) throw new CommandError(EX.usage, `${maskControls(asked)} names no destination: suspend each one by its name`)
  const reason = typeof options['reason'] === 'string' ? options['reason'] : null
  const name = asked.toLowerCase()
  await new ApiClient(api).suspend(name, { by: shell.user, duration, reason })
  await shell.stdout.write(`${maskControls(name)}: suspended\n`)
}

async function resume({ shell, api, words: [asked = ''] }: RemoteCall): Promise<void> {
  const name = asked.toLowerCase()
  await new ApiClient(api).resume(name, shell.user)
  await shell.stdout.write(`${maskControls(name)}: resumed\n`)
}

async function cancel({ shell, api, words: [id = ''] }: RemoteCall): Promise<void> {
  const outcome = await new ApiClient(api).cancel(Number(id), shell.user)
  if (outcome !== 'cancelled')
    throw new CommandError(
      EX.data,
      outcome === 'ended' ? `operation ${id} has ended` : `there is no operation ${id}: deferd audit shows the ids`,
    )
  await shell.stdout.write(`operation ${id} is cancelled\n`)
}

async function undo({ shell, api, words: [id = ''], options }: RemoteCall): Promise<void> {
  const reason = typeof options['reason'] === 'string' ? options['reason'] : null
  const summary = await new ApiClient(api).undo({ operation: Number(id), who: shell.user, reason })
  await shell.stdout.write(`operation ${id} is undone by operation ${summary.id}: ${plural(summary.changed, 'message')} changed back\n`)
}

export const REMOTE_CHANGES: Readonly<Record<string, (call: RemoteCall) => Promise<void>>> = {
  'destination suspend': suspend,
  'destination resume': resume,
  'operation cancel': cancel,
  'operation undo': undo,
}
