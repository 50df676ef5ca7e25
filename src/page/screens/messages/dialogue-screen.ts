/** The dialogue of an attempt with a host. Its text is masked before it is stored. */
import { html } from '../../../presentation/html.ts'
import type { SessionJson } from '../../../resources/session-json.ts'
import { asCommand } from '../../markup/command-lines.ts'
import { heading, section, type Screen } from '../../markup/frame.ts'
import { facts } from '../../markup/html-table.ts'
import { messageLink } from '../../markup/links.ts'
import { clockTime, distance } from '../../markup/times.ts'
import type { View } from '../../markup/view.ts'
import { destinationPart } from '../../markup/long-words.ts'

interface DialogueFacts {
  readonly queueId: string
  readonly session: SessionJson
}

export const dialogueScreen = (view: View, { queueId, session: { id, time, destination, source, host, text } }: DialogueFacts): Screen => ({
  title: `Dialogue with ${host}`,
  place: 'messages',
  main: html`${heading(
    html`Dialogue with <span class="id">${host}</span>`,
    html`of an attempt for <a href="${messageLink(view, queueId)}">${queueId}</a>`,
    null,
  )}
  ${facts([
    ['began', html`${clockTime(view, time)} (${distance(view, time)})`],
    ['destination', destinationPart(view, destination)],
    ['local address', source],
  ])}
  ${section(
    'What both sides said',
    html`<p class="faint">
        Milliseconds since the connection began; C is this relay, S the host, * an event. Content, passwords and tokens are never in it.
        Attempts with the same destination, cause and minute share a dialogue: it may name the addresses of another message.
      </p>
      <pre class="dialogue"><code>${text}</code></pre>`,
  )}
  ${asCommand(['queue', 'show', queueId, `--session=${id}`], {
    method: 'GET',
    path: `api/v1/messages/${encodeURIComponent(queueId)}/sessions/${encodeURIComponent(id)}`,
  })}`,
})
