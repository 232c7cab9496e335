/** What a budget limits. */
export const budgetScopes = {
  project: 'This project',
  agent: 'One agent',
  api_key: 'One API key',
  organization: 'The organization',
}
/** How long it holds before it begins anew. */
export const budgetPeriods = { hour: 'an hour', day: 'a day', month: 'a month', total: 'in total' }
