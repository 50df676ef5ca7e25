/** Runs the command of an `[oauth.NAME]` table (smtp_sasl_oauth_token_command), which prints the access token of a user. */
import { execFile } from 'node:child_process'
import type { RunTokenCommand } from '../oauth/oauth-client.ts'
import { maskControls } from '../mail/smtp-reply.ts'
import { SECOND, type Duration } from '../system/clock.ts'

const LIMIT: Duration = 10 * SECOND
const OUTPUT_LIMIT = 65_536

/**
 * Runs a shell command with the user as its last argument. Rejects when the command fails, runs for more than 10 s or prints more than 64
 * kB. The Error for the log has the first line of standard error, never of the output.
 */
export const tokenCommand =
  (command: string): RunTokenCommand =>
  (user) =>
    new Promise((resolve, reject) => {
      execFile(
        '/bin/sh',
        ['-c', `${command} "$1"`, 'deferd', user],
        { timeout: LIMIT, maxBuffer: OUTPUT_LIMIT },
        (error, stdout, stderr) => {
          if (error === null) resolve(stdout)
          else reject(new Error(`the token command ${failureOf(error)}${firstLine(stderr)}`))
        },
      )
    })

function failureOf(error: { readonly code?: number | string | null; readonly signal?: string | null; readonly killed?: boolean }): string {
  if (error.code === 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER') return `printed more than ${OUTPUT_LIMIT} bytes`
  if (error.killed === true) return `ran for more than ${LIMIT / SECOND} s`
  return typeof error.code === 'number' ? `ended with exit code ${error.code}` : `failed (${error.signal ?? error.code ?? 'unknown'})`
}

function firstLine(text: string): string {
  const [line = ''] = text.trim().split('\n')
  return line === '' ? '' : `: ${maskControls(line).slice(0, 200)}`
}
