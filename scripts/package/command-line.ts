/** The programs that build artefacts. */
import { errorMessage } from '../../src/system/caught-error.ts'

type Written = readonly string[]

/**
 * Reads the arguments of the process, and prints the paths that `write` returns. Ends with exit code 64 and the usage for wrong arguments, with 1 and the
 * reason when the build fails.
 */
export async function withOptions<T>(
  usage: string,
  read: (args: readonly string[]) => T,
  write: (options: T) => Written | Promise<Written>,
): Promise<void> {
  let options: T
  try {
    options = read(process.argv.slice(2))
  } catch (error) {
    console.error(`${errorMessage(error)}\n${usage}`)
    process.exitCode = 64
    return
  }
  try {
    for (const path of await write(options)) console.log(path)
  } catch (error) {
    console.error(errorMessage(error))
    process.exitCode = 1
  }
}
