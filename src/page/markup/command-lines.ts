/** An action as a command and as a request to the API, to copy. */
import { shellWord } from '../../system/shell-word.ts'
import { html, type Html } from '../../presentation/html.ts'

export interface ApiCall {
  readonly method: 'POST' | 'GET' | 'DELETE'
  /** Path below the root: `api/v1/operations`. */
  readonly path: string
  readonly body?: unknown
}

/** A curl command. DEFERD_URL and DEFERD_TOKEN are variables of the operator's shell, which docs/page.md explains. */
function curlLine({ method, path, body }: ApiCall): string {
  const words = ['curl -fsS', '-H "Authorization: Bearer $DEFERD_TOKEN"']
  if (body !== undefined) words.push("-H 'Content-Type: application/json'", `-d ${shellWord(JSON.stringify(body))}`)
  else if (method !== 'GET') words.push(`-X ${method}`)
  return [...words, `"$DEFERD_URL/${path}"`].join(' ')
}

/** A command of deferd with its arguments quoted for a shell. */
export const commandLine = (words: readonly string[]): string => ['deferd', ...words.map(shellWord)].join(' ')

/** An action that has no command, as a request to the API. */
export const asRequest = (call: ApiCall): Html =>
  html`<details class="as-command">
    <summary>As a request</summary>
    <p><code>${curlLine(call)}</code></p>
  </details>`

/** Both forms of an action, folded until the operator opens them. */
export const asCommand = (words: readonly string[], call: ApiCall | null): Html =>
  html`<details class="as-command">
    <summary>As a command</summary>
    <p><code>${commandLine(words)}</code></p>
    ${call === null ? null : html`<p><code>${curlLine(call)}</code></p>`}
  </details>`
