/** Opens the queue in a folder as a daemon does, in threads, and ends: by SIGKILL when it is open, before anything is synced, else with the exit code of the error. */
import { errorExitCode, errorMessage } from '../../../src/system/caught-error.ts'
import { openStore } from '../../../src/store/sqlite/open-store.ts'

try {
  await openStore(process.argv[2] ?? '', { threads: true, create: true })
  process.kill(process.pid, 'SIGKILL')
} catch (error) {
  process.stderr.write(`${errorMessage(error)}\n`)
  process.exit(errorExitCode(error) ?? 70)
}
