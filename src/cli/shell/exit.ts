/** Errors that end a command, with exit codes of sysexits(3). */
import { errorMessage } from '../../system/caught-error.ts'

/** The reader of the output has closed the pipe (`| head`). The command ends with exit code 0. */
export class BrokenPipe extends Error {
  override readonly name = 'BrokenPipe'
}

/** A failure that is reported in one sentence. The command ends with an exit code of sysexits(3). */
export class CommandError extends Error {
  override readonly name: string = 'CommandError'
  readonly exitCode: number

  constructor(exitCode: number, message: string, options?: ErrorOptions) {
    super(message, options)
    this.exitCode = exitCode
  }
}

/** sysexits(3) */
export const EX = {
  usage: 64,
  data: 65,
  unavailable: 69,
  software: 70,
  osError: 71,
  cannotCreate: 73,
  ioError: 74,
  temporary: 75,
  notPermitted: 77,
  config: 78,
} as const

/** Standard output or standard error cannot be written, for example on a full disk. The command ends with exit code 74. */
export class OutputFailed extends CommandError {
  override readonly name: string = 'OutputFailed'

  constructor(cause: unknown) {
    super(EX.ioError, `cannot write the output: ${errorMessage(cause)}`, { cause })
  }
}
