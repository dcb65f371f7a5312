"""What happens in a stream when it is time: messages expire, schedules bring others, the clock was stepped."""
