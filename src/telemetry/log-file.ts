/** The file of log_file, opened for appending. A write is synchronous, so that no line is lost when the process ends. */
import { accessSync, closeSync, constants, fchownSync, fstatSync, openSync, statSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { errorMessage } from '../system/caught-error.ts'

/** Reason why the log cannot be written to the file, with the name of the parameter; null when it can. Creates and changes nothing. */
export function logFileProblem(path: string): string | null {
  const file = statSync(path, { throwIfNoEntry: false })
  if (file?.isDirectory() === true) return `log_file: ${path} is a folder: name a file in it`
  try {
    accessSync(file === undefined ? dirname(path) : path, constants.W_OK)
    return null
  } catch (cause) {
    return `log_file: cannot write ${path}: ${errorMessage(cause)}`
  }
}

export class LogFile {
  readonly #fd: number
  /** True after a failed write, until a write succeeds. */
  #failing = false
  readonly #report: (text: string) => void

  /**
   * Opens the file, which is created with mode 0640, and gives the file to `owner`. Throws the system's error. A failed write does not
   * throw, because the log must not stop mail: its lines are lost, and `report` gets the first failure of a series, such as on a full disk.
   */
  constructor(path: string, report: (text: string) => void, owner: { readonly uid: number; readonly gid: number } | null = null) {
    this.#fd = openSync(path, 'a', 0o640)
    this.#report = report
    if (owner !== null && fstatSync(this.#fd).uid !== owner.uid) fchownSync(this.#fd, owner.uid, owner.gid)
  }

  write(text: string): void {
    try {
      const bytes = Buffer.from(text)
      for (let sent = 0; sent < bytes.length;) sent += writeSync(this.#fd, bytes, sent)
      this.#failing = false
    } catch (error) {
      if (!this.#failing) this.#report(`cannot write log_file: ${errorMessage(error)}; lines are lost until it can be written\n`)
      this.#failing = true
    }
  }

  close(): void {
    closeSync(this.#fd)
  }
}
