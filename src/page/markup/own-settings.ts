import { html, type Html } from '../../presentation/html.ts'
import { linkTo } from './links.ts'
import type { View } from './view.ts'

/** Says whose settings a screen shows, where the nodes of a shared queue differ; null where they do not. */
export const ownSettings = (view: View, differing: readonly string[]): Html | null =>
  differing.length === 0
    ? null
    : html`by the settings of ${view.node ?? view.relay}, which answers: the <a href="${linkTo(view, 'nodes')}">nodes</a> differ in
        ${differing.join(', ')}, and deliveries are by the settings of the node that has the destination`
