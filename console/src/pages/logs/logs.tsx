import { LogsPage } from './logs-page.tsx'

export default LogsPage
